"""Custom kinds: what a CustomResourceDefinition makes of a cluster.

schema        structural schemas: pruning, defaults, validation
shapes        the same schemas as server-side apply sees them
definition    a CustomResourceDefinition read: its versions, each with its schema and rules
documents     reading and cleaning documents of custom kinds
strategy      the rules for objects of custom kinds
rules         the rules for definitions themselves
types         the custom kinds that there are, kept up with the store
controller    names accepted, kinds established, objects removed with their definition
columns       `additionalPrinterColumns`

CEL rules (`x-kubernetes-validations`) are stored and not evaluated; conversion between versions changes the apiVersion
and nothing else. Source of truth: apiextensions-apiserver 0.36.
"""
