"""GPUs one by one, and shares of them: what pods ask for, what each device has left, which device a pod gets."""
