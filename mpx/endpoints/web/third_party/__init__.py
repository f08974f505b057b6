"""Copies straight from one web server to another (HTTP-TPC): one of them is told, and tells how far it is."""
