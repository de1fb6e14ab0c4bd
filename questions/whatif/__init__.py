"""Consequences of the loss or return of brokers, or of a reassignment, by `controller.step`."""
