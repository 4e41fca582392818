"""The data layer that the service and the workers share."""
