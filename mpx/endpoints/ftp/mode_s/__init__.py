"""Data channels in MODE S (stream mode, RFC 959), which every FTP server has."""
