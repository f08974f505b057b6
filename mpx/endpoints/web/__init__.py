"""`http://`, `https://`, `dav://` and `davs://`: servers of HTTP and WebDAV."""
