"""What `mpx serve` offers beyond GridFTP (docs/extensions.md)."""
