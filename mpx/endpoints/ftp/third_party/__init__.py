"""Third party: files go straight from one server to another, which both are told what to do."""
