"""The Grafana boards as code. `python -m lab.boards` writes them to `deploy/helm/kontrast/boards/`.

The code needs grafana-foundation-sdk and Python 3.11. Users import the committed JSON, so Kontrast never imports this
package at run time.
"""

import warnings

with warnings.catch_warnings():
    # Ignore that the SDK prefers a newer dashboard format, because the Grafana of many fleets cannot read it.
    warnings.simplefilter("ignore", DeprecationWarning)
    import grafana_foundation_sdk.builders.dashboard
    import grafana_foundation_sdk.builders.stat  # noqa: F401 (both warn when they are first imported)
