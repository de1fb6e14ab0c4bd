{{- define "kontrast.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}-kontrast
{{- end }}

{{- define "kontrast.labels" -}}
app.kubernetes.io/name: kontrast
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "kontrast.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "kontrast.claim" -}}
{{ .Values.persistence.existingClaim | default (printf "%s-state" (include "kontrast.name" .)) }}
{{- end }}

{{/* Files of every container: the configuration, the Secrets' keys, and the realms of Kerberos for MIT's library and Java. */}}
{{- define "kontrast.mounts" -}}
- {name: config, mountPath: /etc/kontrast/kontrast.toml, subPath: kontrast.toml, readOnly: true}
{{- if .Values.existingSecrets }}
- {name: secrets, mountPath: /etc/kontrast/secrets, readOnly: true}
{{- end }}
{{- if .Values.krb5ConfigMap }}
- {name: krb5, mountPath: /etc/krb5.conf, subPath: krb5.conf, readOnly: true}
{{- end }}
{{- end }}

{{- define "kontrast.volumes" -}}
- name: config
  configMap: {name: {{ include "kontrast.name" . }}}
{{- with .Values.existingSecrets }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range . }}
      - secret: {name: {{ . }}}
      {{- end }}
{{- end }}
{{- with .Values.krb5ConfigMap }}
- name: krb5
  configMap: {name: {{ . }}}
{{- end }}
{{- end }}

{{/* A Deployment of one command: root, command, replicas, resources, ports, the probed one, whether it has the volume, and
whether its work may be shared, so that an update starts the new pod before it ends the old one. */}}
{{- define "kontrast.deployment" -}}
{{- $name := printf "%s-%s" (include "kontrast.name" .root) .command }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "kontrast.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .command }}
spec:
  replicas: {{ .replicas }}
  {{- if not .shared }}
  strategy: {type: Recreate}
  {{- end }}
  selector:
    matchLabels:
      app.kubernetes.io/name: kontrast
      app.kubernetes.io/instance: {{ .root.Release.Name }}
      app.kubernetes.io/component: {{ .command }}
  template:
    metadata:
      labels:
        {{- include "kontrast.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .command }}
        {{- with .root.Values.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      annotations:
        checksum/config: {{ .root.Values.config | sha256sum }}
        {{- with .root.Values.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      serviceAccountName: {{ include "kontrast.name" .root }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      # Two of the longest batches (20 s each, decision 29), and `kontrast up` ends its three commands in turn.
      terminationGracePeriodSeconds: 120
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: {type: RuntimeDefault}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets: {{ toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .command }}
          image: {{ include "kontrast.image" .root | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: [{{ .command }}]
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          {{- with .ports }}
          ports:
            {{- range $port, $number := . }}
            - {name: {{ $port }}, containerPort: {{ $number }}, protocol: TCP}
            {{- end }}
          {{- end }}
          {{- if .probed }}
          # The first complete read and Spark's start take minutes on a large cluster.
          startupProbe: {httpGet: {path: /healthz, port: {{ .probed }}}, periodSeconds: 5, failureThreshold: 180}
          livenessProbe: {httpGet: {path: /healthz, port: {{ .probed }}}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6}
          readinessProbe: {httpGet: {path: /readyz, port: {{ .probed }}}, periodSeconds: 10, timeoutSeconds: 5}
          {{- end }}
          resources: {{ toYaml .resources | nindent 12 }}
          volumeMounts:
            {{- include "kontrast.mounts" .root | nindent 12 }}
            - {name: tmp, mountPath: /tmp}
            {{- if .state }}
            - {name: state, mountPath: /var/lib/kontrast}
            {{- end }}
      volumes:
        {{- include "kontrast.volumes" .root | nindent 8 }}
        - name: tmp
          emptyDir: {sizeLimit: 4Gi}
        {{- if .state }}
        - name: state
          persistentVolumeClaim: {claimName: {{ include "kontrast.claim" .root }}}
        {{- end }}
      {{- with .root.Values.nodeSelector }}
      nodeSelector: {{ toYaml . | nindent 8 }}
      {{- end }}
      {{- if gt (int .replicas) 1 }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              app.kubernetes.io/name: kontrast
              app.kubernetes.io/instance: {{ .root.Release.Name }}
              app.kubernetes.io/component: {{ .command }}
      {{- end }}
      {{- with .root.Values.tolerations }}
      tolerations: {{ toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.affinity }}
      affinity: {{ toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
