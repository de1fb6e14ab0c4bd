"""The tests, in the folders of their subjects. This folder has the code that several folders share."""
