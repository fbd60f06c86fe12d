"""Every optimizer of the torch wheel's database, in every configuration it lists, run under torch and gradwire."""
