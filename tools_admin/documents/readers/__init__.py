"""Run in the confined child: no Django here, and everything imported at the top."""
