"""Files from one server to another: straight from one to the other (third party), or through this host."""
