"""How tokens move: start, admission, joins, arcs, loops, compensation."""
