"""A Kubernetes cluster inside the process: store, admission, controllers, kubelets. Nothing to install.

Read it in this order: `store` (what is kept), `admission` (what may be kept), `server` (what a client may ask),
`controllers` and `kubelet` (what moves by itself), `world` (what runs them and when), `engine` (the port's face).
"""
