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
{{ .image.repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* HTTPS if the configuration has a certificate for this port (http: serve's, watch: that of watch), else empty. */}}
{{- define "kontrast.scheme" -}}
{{- $key := ternary `(serve\.)?tls_certificate_file` `(watch\.)?metrics_tls_certificate_file` (eq .port "http") }}
{{- if regexMatch (printf `(?m)^\s*%s\s*=` $key) .root.Values.config }}HTTPS{{ end }}
{{- end }}

{{/* A quantity of memory, as Kubernetes (3Gi) or Spark (3g) writes it, in mebibytes. */}}
{{- define "kontrast.mebibytes" -}}
{{- $unit := regexFind "[A-Za-z]*$" (toString .) }}
{{- $factor := get (dict "k" 1024 "Ki" 1024 "m" 1048576 "Mi" 1048576 "M" 1e6 "g" 1073741824 "Gi" 1073741824 "G" 1e9 "t" 1099511627776 "Ti" 1099511627776 "T" 1e12) $unit | default 1 }}
{{- divf (mulf (trimSuffix $unit (toString .) | float64) $factor) 1048576 }}
{{- end }}

{{/* The names by which clients in the cluster reach the service. */}}
{{- define "kontrast.hosts" -}}
{{- $name := include "kontrast.name" . }}
{{- $names := list $name }}
{{- range list "" ".svc" ".svc.cluster.local" }}
{{- $names = append $names (printf "%s.%s%s" $name $.Release.Namespace .) }}
{{- end }}
{{- $names | join "," }}
{{- end }}

{{- define "kontrast.claim" -}}
{{ .Values.persistence.existingClaim | default (printf "%s-state" (include "kontrast.name" .)) }}
{{- end }}

{{/* Where pods keep state: empty where the checkpoint is on HDFS or S3. */}}
{{- define "kontrast.keeps" -}}
{{- if or .Values.persistence.enabled (eq .Values.mode "together") }}yes{{ end }}
{{- end }}

{{/* Files of every container: the configuration, the Secrets' keys in a directory for each Secret, the realms of Kerberos for MIT's
library and Java, and Hadoop's settings. */}}
{{- define "kontrast.mounts" -}}
- {name: config, mountPath: /etc/kontrast/kontrast.toml, subPath: kontrast.toml, readOnly: true}
{{- range $number, $secret := .Values.existingSecrets }}
- {name: secret-{{ $number }}, mountPath: /etc/kontrast/secrets/{{ $secret }}, readOnly: true}
{{- end }}
{{- if .Values.krb5ConfigMap }}
- {name: krb5, mountPath: /etc/krb5.conf, subPath: krb5.conf, readOnly: true}
{{- end }}
{{- if .Values.hadoopSecret }}
- {name: hadoop, mountPath: /etc/kontrast/hadoop, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "kontrast.volumes" -}}
- name: config
  configMap: {name: {{ include "kontrast.name" . }}}
{{- range $number, $secret := .Values.existingSecrets }}
- name: secret-{{ $number }}
  secret: {secretName: {{ $secret }}, defaultMode: 0440}
{{- end }}
{{- with .Values.krb5ConfigMap }}
- name: krb5
  configMap: {name: {{ . }}}
{{- end }}
{{- with .Values.hadoopSecret }}
- name: hadoop
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A Deployment of one command: root, command, image, replicas, resources, ports, the probed one, whether it has the volume,
and whether its work may be shared, so that an update starts the new pod before it ends the old one. */}}
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
      {{- with .root.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets: {{ toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .command }}
          image: {{ include "kontrast.image" (dict "root" .root "image" .image) | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: [{{ .command }}]
          {{- $hosts := and (ne .command "watch") (ne .command "stream") (not (regexMatch `(?m)^\s*(serve\.)?allowed_hosts\s*=` .root.Values.config)) }}
          {{- if or $hosts .root.Values.extraEnv }}
          env:
            {{- if $hosts }}
            - {name: KONTRAST_SERVE__ALLOWED_HOSTS, value: {{ include "kontrast.hosts" .root | quote }}}
            {{- end }}
            {{- with .root.Values.extraEnv }}{{ toYaml . | nindent 12 }}{{ end }}
          {{- end }}
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
          {{- $scheme := include "kontrast.scheme" (dict "root" .root "port" .probed) }}
          {{- $asked := printf "port: %s%s" .probed (ternary (printf ", scheme: %s" $scheme) "" (ne $scheme "")) }}
          # The first complete read and Spark's start take minutes on a large cluster.
          startupProbe: {httpGet: {path: /healthz, {{ $asked }}}, periodSeconds: 5, failureThreshold: 180}
          livenessProbe: {httpGet: {path: /healthz, {{ $asked }}}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6}
          readinessProbe: {httpGet: {path: /readyz, {{ $asked }}}, periodSeconds: 10, timeoutSeconds: 5}
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
