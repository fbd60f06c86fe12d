"""Arrays, devices, memory and limits."""
