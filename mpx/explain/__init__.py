"""What a report of `mpx copy` tells: read, told in plain words, and drawn. Pure but for what writes files."""
