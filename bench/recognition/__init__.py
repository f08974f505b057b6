"""What the rows on recognising the background (OPS-F22 to F28, ops_models) have in common."""
