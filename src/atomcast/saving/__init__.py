"""How fitted models become files: the container, parameters, layouts and the certificate."""
