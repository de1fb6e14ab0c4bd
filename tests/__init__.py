"""The tests, in the same folders as what they test; what several folders use is beside this file."""
