"""Data channels in MODE E (extended block mode, GFD.20): blocks with offsets over several streams."""
