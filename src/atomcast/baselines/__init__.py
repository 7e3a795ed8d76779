"""What dFW is compared with: atoms chosen by each node alone, and ADMM."""
