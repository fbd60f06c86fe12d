"""Every optimizer of torch's database, in every configuration that it lists, under torch and gradwire."""
