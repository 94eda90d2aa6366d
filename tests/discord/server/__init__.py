"""A Discord REST and Gateway server for tests.

SimCord (https://pypi.org/project/simcord) is the Discord inside: guilds, channels, messages,
permissions, interactions and what each intent lets through are its work. This package gives it a
REST API and a Gateway on one port, fills in what SimCord leaves out or does differently from
Discord, fails on demand, and has a control API for the people's side (``/__sim/...``).

One file per thing:

* ``world``: the state behind everything, a SimCord backend with the additions
* ``rest``: the REST API: authorization, faults, limits, then a route
* ``routes``: the routes that SimCord has not, or has differently
* ``limits``: rate limits and the count of invalid requests
* ``faults``: what goes wrong on demand
* ``gateway`` and ``sessions``: the WebSocket, and what survives it
* ``wire``: fields that strict clients require
* ``people``: what a person does
* ``view``: what a person sees
* ``control``: the control API, documented in README.md
"""
