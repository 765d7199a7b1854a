"""The equations of claims: left side, relation, right side, when they hold, and their displays."""
