// Empty: see selection.go.
