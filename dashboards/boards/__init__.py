"""The Grafana boards as code; `python -m dashboards.boards` writes them to `dashboards/grafana/`.

Made with grafana-foundation-sdk, which needs Python 3.11. Nothing imports this at run time: people import the committed
JSON into Grafana.
"""

import warnings

with warnings.catch_warnings():
    # The SDK prefers the newer dashboard format, which the Grafana of many ZooKeeper-mode fleets cannot read.
    warnings.simplefilter("ignore", DeprecationWarning)
    import grafana_foundation_sdk.builders.dashboard
    import grafana_foundation_sdk.builders.stat  # noqa: F401 (both warn when they are first imported)
