"""What would follow from the loss of brokers, their return, or a reassignment, worked out by `controller.step`."""
