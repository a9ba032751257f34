"""The kubelet's fields and flags that say nothing about CPUs, memory or their placement: known, and passed over.

Source of truth: k8s.io/kubelet 0.36 config/v1beta1, and kubelet 1.36 cmd/kubelet/app/options.
"""

from __future__ import annotations

OTHER_FIELDS = frozenset(
    """
    address allowedUnsafeSysctls authentication authorization clusterDNS clusterDomain
    configMapAndSecretChangeDetectionStrategy containerLogMaxFiles containerLogMaxSize containerLogMaxWorkers
    containerLogMonitorInterval containerRuntimeEndpoint contentType cpuManagerReconcilePeriod crashLoopBackOff
    enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers
    enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery eventBurst eventRecordQPS
    evictionMaxPodGracePeriod evictionMinimumReclaim evictionPressureTransitionPeriod evictionSoft
    evictionSoftGracePeriod failCgroupV1 failSwapOn featureGates fileCheckFrequency hairpinMode healthzBindAddress
    healthzPort httpCheckFrequency imageGCHighThresholdPercent imageGCLowThresholdPercent imageMaximumGCAge
    imageMinimumGCAge imagePullCredentialsVerificationPolicy imageServiceEndpoint iptablesDropBit
    iptablesMasqueradeBit kernelMemcgNotification kubeAPIBurst kubeAPIQPS kubeletCgroups
    localStorageCapacityIsolation logging makeIPTablesUtilChains maxOpenFiles maxParallelImagePulls maxPods
    memoryReservationPolicy memorySwap memoryThrottlingFactor nodeLeaseDurationSeconds nodeStatusMaxImages
    nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj podCIDR podLogsDir podPidsLimit podsPerCore
    port preloadedImagesVerificationAllowlist protectKernelDefaults providerID qosReserved readOnlyPort
    registerNode registerWithTaints registryBurst registryPullQPS resolvConf rotateCertificates runOnce
    runtimeRequestTimeout seccompDefault serializeImagePulls serverTLSBootstrap showHiddenMetricsForVersion
    shutdownGracePeriod shutdownGracePeriodByPodPriority shutdownGracePeriodCriticalPods singleProcessOOMKill
    staticPodPath staticPodURL staticPodURLHeader streamingConnectionIdleTimeout syncFrequency systemCgroups
    tlsCertFile tlsCipherSuites tlsCurvePreferences tlsMinVersion tlsPrivateKeyFile tracing userNamespaces
    volumePluginDir volumeStatsAggPeriod
    """.split()  # noqa: SIM905 - a list of two hundred quoted names is no easier to read
)
OTHER_FLAGS = frozenset(
    """
    address allowed-unsafe-sysctls anonymous-auth application-metrics-count-limit authentication-token-webhook
    authentication-token-webhook-cache-ttl authorization-mode authorization-webhook-cache-authorized-ttl
    authorization-webhook-cache-unauthorized-ttl boot-id-file bootstrap-kubeconfig cert-dir client-ca-file
    cloud-provider cluster-dns cluster-domain config config-dir container-hints container-log-max-files
    container-log-max-size container-runtime-endpoint containerd containerd-namespace contention-profiling
    cpu-manager-reconcile-period enable-controller-attach-detach enable-debugging-handlers enable-load-reader
    enable-server event-burst event-qps event-storage-age-limit event-storage-event-limit
    eviction-max-pod-grace-period eviction-minimum-reclaim eviction-pressure-transition-period eviction-soft
    eviction-soft-grace-period exit-on-lock-contention experimental-allocatable-ignore-eviction
    experimental-mounter-path fail-cgroupv1 fail-swap-on feature-gates file-check-frequency
    global-housekeeping-interval hairpin-mode healthz-bind-address healthz-port help hostname-override
    housekeeping-interval http-check-frequency image-credential-provider-bin-dir image-credential-provider-config
    image-gc-high-threshold image-gc-low-threshold image-service-endpoint kernel-memcg-notification kube-api-burst
    kube-api-content-type kube-api-qps kubeconfig kubelet-cgroups local-storage-capacity-isolation lock-file
    log-cadvisor-usage log-flush-frequency log-json-info-buffer-size log-json-split-stream
    log-text-info-buffer-size log-text-split-stream logging-format machine-id-file make-iptables-util-chains
    manifest-url manifest-url-header max-open-files max-pods maximum-dead-containers
    maximum-dead-containers-per-container minimum-container-ttl-duration minimum-image-ttl-duration node-ip
    node-labels node-status-max-images node-status-update-frequency oom-score-adj pod-cidr pod-manifest-path
    pod-max-pids pods-per-core port protect-kernel-defaults provider-id qos-reserved read-only-port register-node
    register-with-taints registry-burst registry-qps resolv-conf root-dir rotate-certificates
    rotate-server-certificates runonce runtime-cgroups runtime-request-timeout seccomp-default
    serialize-image-pulls storage-driver-buffer-duration storage-driver-db storage-driver-host
    storage-driver-password storage-driver-secure storage-driver-table storage-driver-user
    streaming-connection-idle-timeout sync-frequency system-cgroups tls-cert-file tls-cipher-suites
    tls-min-version tls-private-key-file v version vmodule volume-plugin-dir volume-stats-agg-period
    """.split()  # noqa: SIM905 - as above
)
