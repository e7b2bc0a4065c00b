"""From counted pretokens to an ordered list of merges."""
