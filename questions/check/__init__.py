"""The judgement of a cluster: what clients lost, the incidents, the state, and the answer of `check`."""
