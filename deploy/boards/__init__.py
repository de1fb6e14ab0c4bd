"""The Grafana boards as code. `python -m deploy.boards` writes them to `dashboards/grafana/`.

They need grafana-foundation-sdk and Python 3.11. Users import the committed JSON, so no module imports this at run
time.
"""

import warnings

with warnings.catch_warnings():
    # The SDK prefers the newer dashboard format, which the Grafana of many ZooKeeper-mode fleets cannot read.
    warnings.simplefilter("ignore", DeprecationWarning)
    import grafana_foundation_sdk.builders.dashboard
    import grafana_foundation_sdk.builders.stat  # noqa: F401 (both warn when they are first imported)
