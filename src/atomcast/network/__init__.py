"""How nodes talk: topologies, the wire format, and the ledger of what was sent."""
