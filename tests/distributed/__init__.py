"""Programs of several ranks that train together, and the launcher that starts them."""
