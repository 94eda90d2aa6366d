"""A Discord REST and Gateway server for tests.

SimCord (https://pypi.org/project/simcord) is the Discord inside: it implements guilds, channels, messages,
permissions, interactions and intents. This package adds a REST API and a Gateway on one port, fills in
what SimCord leaves out or does differently from Discord, fails on demand, and has a control API for the
people's side (``/__sim/...``).

Modules:

* ``world``: the state behind everything: a SimCord backend with additions
* ``rest``: the REST API: authorization, faults, limits, then a route
* ``routes``: the routes that SimCord lacks or implements differently
* ``limits``: rate limits and the count of invalid requests
* ``faults``: failures on demand
* ``gateway`` and ``sessions``: the WebSocket, and what outlives it
* ``wire``: fields that strict clients require
* ``people``: the actions of people
* ``view``: what a person sees
* ``control``: the control API, documented in README.md
"""
