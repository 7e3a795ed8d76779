"""A run as a page of HTML that stands by itself: no network, no scripts from elsewhere."""
