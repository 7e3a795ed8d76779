"""Fits between organisations: each guards its own data, and what leaves was agreed on."""


def check_installed() -> None:
    """Raise an ImportError that says what to install, unless all that is needed is there."""
    try:
        import cryptography  # noqa: F401
        import grpc  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"fits between organisations need gRPC and cryptography ({error}): install them with "
            "pip install 'atomcast[federated]'"
        ) from error
