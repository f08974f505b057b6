"""Files that are reached by HTTP: plain web servers, and WebDAV (https, http, davs, dav)."""
