"""Kubernetes manifests for an image: a deployment with probes, a service, scaling on requests in flight."""

from __future__ import annotations

from modelc.container.image import PORT, USER_ID

MIB = 1 << 20
SPARE_BYTES = 1 << 30  # beside the weights: Python, compiled code, keys and values of some requests

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  labels: &labels
    app.kubernetes.io/name: {name}
    app.kubernetes.io/managed-by: modelc
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: {name}
  template:
    metadata:
      labels: *labels
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "{port}"
        prometheus.io/path: /metrics
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 120
      securityContext:
        runAsNonRoot: true
        runAsUser: {user}
        runAsGroup: {user}
        fsGroup: {user}
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: modelc
          image: {image}
          ports:
            - name: http
              containerPort: {port}
          env:
            - name: MODELC_API_KEY # kubectl create secret generic {name} --from-literal=api-key=...
              valueFrom:
                secretKeyRef:
                  name: {name}
                  key: api-key
                  optional: true
          startupProbe: # while the model loads, /health answers with 503
            httpGet: &health
              path: /health
              port: http
            periodSeconds: 2
            failureThreshold: 300
          readinessProbe:
            httpGet: *health
            periodSeconds: 5
            timeoutSeconds: 4
          livenessProbe:
            httpGet: *health
            periodSeconds: 20
            timeoutSeconds: 10
            failureThreshold: 3
          resources:
            requests:
              cpu: "2"
              memory: {request_mib}Mi
            limits:
              cpu: "4"
              memory: {limit_mib}Mi
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: cache
              mountPath: /cache
            - name: tmp
              mountPath: /tmp
      volumes:
        - name: cache
          emptyDir: {{}}
        - name: tmp
          emptyDir: {{}}
"""

SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: {name}
  labels:
    app.kubernetes.io/name: {name}
    app.kubernetes.io/managed-by: modelc
spec:
  selector:
    app.kubernetes.io/name: {name}
  ports:
    - name: http
      port: 80
      targetPort: http
"""

SCALER = """\
# The metric comes from /metrics by way of an adapter for custom metrics (Prometheus Adapter, KEDA, ...).
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {name}
  labels:
    app.kubernetes.io/name: {name}
    app.kubernetes.io/managed-by: modelc
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {name}
  minReplicas: 1
  maxReplicas: 8
  metrics:
    - type: Pods
      pods:
        metric:
          name: modelc_active_requests
        target:
          type: AverageValue
          averageValue: "8"
  behavior:
    scaleDown:
      stabilizationWindowSeconds: 300
"""


def manifests(name: str, image: str, model_bytes: int) -> dict[str, str]:
    """The manifests by file name.

    Args:
        name: of the resources: a DNS label.
        image: the container image.
        model_bytes: size of the model's file, which decides the memory.
    """
    needed = model_bytes + SPARE_BYTES
    values = {
        "name": name,
        "image": image,
        "port": PORT,
        "user": USER_ID,
        "request_mib": -(-needed // MIB),
        "limit_mib": -(-2 * needed // MIB),
    }
    texts = {"deployment.yaml": DEPLOYMENT, "service.yaml": SERVICE, "autoscaler.yaml": SCALER}
    return {file: text.format(**values) for file, text in texts.items()}
