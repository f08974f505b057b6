"""What every transfer is made of: contracts of endpoints, carriers and tuners; files, ranges, checksums."""
