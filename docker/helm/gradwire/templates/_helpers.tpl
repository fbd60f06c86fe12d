{{- define "gradwire.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "gradwire.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "gradwire.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "gradwire.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "gradwire.selectorLabels" -}}
app.kubernetes.io/name: {{ include "gradwire.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gradwire.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "gradwire.selectorLabels" . }}
{{- end }}

{{- define "gradwire.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "gradwire.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "gradwire.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{/* A server without a key of its own would make one and print it to the log, where it does not belong. */}}
{{- define "gradwire.keysSecret" -}}
{{- if .Values.keys.existingSecret -}}
{{ .Values.keys.existingSecret }}
{{- else if or .Values.keys.api .Values.keys.admin -}}
{{ include "gradwire.fullname" . }}-keys
{{- else -}}
{{ fail "name a Secret with keys.existingSecret, or give hashes of keys with keys.api and keys.admin" }}
{{- end -}}
{{- end }}

{{/* A number as digits: YAML's large integers arrive as floats, and would be written as 2.147483648e+09. */}}
{{- define "gradwire.scalar" -}}
{{- if kindIs "float64" . -}}
{{- if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- else }}{{ . }}{{ end -}}
{{- end }}

{{/* The drain time of the settings, plus time to close. */}}
{{- define "gradwire.graceSeconds" -}}
{{- add (.Values.settings.drain_grace_s | default 0 | ceil) (.Values.settings.drain_timeout_s | default 30 | ceil) 15 }}
{{- end }}

{{- define "gradwire.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "gradwire.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
