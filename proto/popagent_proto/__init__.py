"""Every message between the services and every shape on HTTP, declared once."""
