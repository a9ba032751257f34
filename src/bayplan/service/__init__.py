"""What every long-running process of bayplan shares: settings, logs, health and metrics, orderly shutdown.

settings    what can be set: one frozen struct a section
sources     where a value comes from: flag > environment > file > default, each with its origin
durations   "1h30m", exact
levels      "node.gpu=trace,ledger=debug,info"
logging     one logger a room, cheap when it is silent
redaction   what must never reach a log
identity    which bayplan this is
health      /livez /readyz /metrics /version /loglevel
lifecycle   signals, tasks, and closing in reverse order
"""
