{{/* The Ray cluster. KubeRay derives names of up to 50 characters from it, so it is short. */}}
{{- define "gradwire.fleet.name" -}}
{{- include "gradwire.fullname" . | trunc 34 | trimSuffix "-" }}-fleet
{{- end }}

{{- define "gradwire.fleet.claim" -}}
{{ .Values.fleet.store.existingClaim | default (printf "%s-store" (include "gradwire.fullname" .)) }}
{{- end }}

{{/* Gateways and Ray's pods have these: who has both belongs to the fleet. */}}
{{- define "gradwire.fleet.memberLabels" -}}
gradwire-fleet: {{ include "gradwire.fleet.name" . }}
{{- end }}

{{/* Settings, store and token: the same in every container of the fleet. */}}
{{- define "gradwire.fleet.env" -}}
- name: GRADWIRE_SESSION_HOST
  value: ray
- name: GRADWIRE_STORE
  value: {{ .Values.fleet.store.url | default "/store" | quote }}
- name: GRADWIRE_DIRECT
  value: {{ .Values.fleet.direct | quote }}
{{- $grows := false }}
{{- range .Values.fleet.nodes }}
{{- if gt (int .max) (int .min) }}{{ $grows = true }}{{ end }}
{{- end }}
- name: GRADWIRE_AUTOSCALING
  value: {{ $grows | quote }}
{{- range $name, $value := omit .Values.settings "session_host" }}
- name: GRADWIRE_{{ upper $name }}
  value: {{ include "gradwire.scalar" $value | quote }}
{{- end }}
- name: RAY_USAGE_STATS_ENABLED
  value: "0"
# Numeric libraries count the node's cores, not the limit.
- name: OMP_NUM_THREADS
  valueFrom:
    resourceFieldRef:
      resource: limits.cpu
      divisor: "1"
- name: OPENBLAS_NUM_THREADS
  value: $(OMP_NUM_THREADS)
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gradwire.fleet.envFrom" -}}
{{- if and .Values.fleet.store.url .Values.fleet.store.existingSecret }}
envFrom:
  - secretRef:
      name: {{ .Values.fleet.store.existingSecret }}
{{- end }}
{{- end }}

{{- define "gradwire.fleet.mounts" -}}
- name: tmp
  mountPath: /tmp
- name: home
  mountPath: /data
{{- if not .Values.fleet.store.url }}
- name: store
  mountPath: /store
{{- end }}
{{- end }}

{{/* Ray writes sockets and logs to /tmp; a worker's local copies of sessions in an object store are in /data. */}}
{{- define "gradwire.fleet.volumes" -}}
- name: tmp
  emptyDir: {}
- name: home
  emptyDir: {}
{{- if not .Values.fleet.store.url }}
- name: store
  persistentVolumeClaim:
    claimName: {{ include "gradwire.fleet.claim" . }}
{{- end }}
{{- end }}

{{/* Fixed ports for all that Ray listens on, below the workers' listeners. */}}
{{- define "gradwire.fleet.rayPorts" -}}
node-manager-port: "10010"
object-manager-port: "10011"
metrics-export-port: "10012"
runtime-env-agent-port: "10013"
dashboard-agent-grpc-port: "10014"
dashboard-agent-listen-port: "10015"
min-worker-port: "10100"
max-worker-port: "19999"
{{- end }}
