{{- define "bulkhead.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "bulkhead.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else -}}
{{- $name := include "bulkhead.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{ $full | trunc 52 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "bulkhead.selectorLabels" -}}
app.kubernetes.io/name: {{ include "bulkhead.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bulkhead.labels" -}}
{{ include "bulkhead.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "bulkhead.serviceAccountName" -}}
{{- $made := .Values.serviceAccount.create | ternary (include "bulkhead.fullname" .) "default" -}}
{{ .Values.serviceAccount.name | default $made }}
{{- end }}

{{- define "bulkhead.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "bulkhead.leaseNamespace" -}}
{{- $default := .Values.controlPlane.inCluster | ternary .Release.Namespace "karmada-system" -}}
{{ .Values.leaderElection.namespace | default $default }}
{{- end }}

{{- define "bulkhead.webhookUrl" -}}
{{- $default := printf "https://%s-webhook.%s.svc:443" (include "bulkhead.fullname" .) .Release.Namespace -}}
{{ .Values.webhook.url | default $default }}
{{- end }}

{{- define "bulkhead.pluginVolume" -}}
{{- if .Values.plugins.files -}}
configMap: {name: {{ include "bulkhead.fullname" . }}-plugins}
{{- else if .Values.plugins.configMap -}}
configMap: {name: {{ .Values.plugins.configMap }}}
{{- else if .Values.plugins.volume -}}
{{ toYaml .Values.plugins.volume }}
{{- end -}}
{{- end }}

{{/* Returns the distinct modes, separated by commas. The value may be a string or a list. */}}
{{- define "bulkhead.modes" -}}
{{- $modes := kindIs "slice" .Values.mode | ternary .Values.mode (splitList "," (toString .Values.mode)) -}}
{{ $modes | uniq | join "," }}
{{- end }}

{{/* Returns the arguments for the modes and controllers. */}}
{{- define "bulkhead.modeArguments" -}}
- --mode={{ include "bulkhead.modes" . }}
{{- if .Values.controllers }}
- --controllers={{ join "," .Values.controllers }}
{{- end -}}
{{- end }}

{{- define "bulkhead.journalVolume" -}}
{{- if .Values.journal.volume -}}
{{ toYaml .Values.journal.volume }}
{{- else -}}
emptyDir: {sizeLimit: {{ .Values.journal.sizeLimit }}}
{{- end -}}
{{- end }}

{{/* Returns the configuration file. */}}
{{- define "bulkhead.configuration" -}}
apiVersion: bulkhead.dev/v1alpha1
kind: BulkheadConfiguration
{{ toYaml .Values.configuration }}
{{- end }}

{{/* Returns a setting as an argument: comma-separated lists and KEY=VALUE maps, numbers without an exponent. */}}
{{- define "bulkhead.setting" -}}
{{- if kindIs "map" . -}}
{{- $pairs := list -}}
{{- range $key, $value := . }}{{ $pairs = append $pairs (printf "%s=%s" $key (include "bulkhead.setting" $value)) }}{{ end -}}
{{ join "," $pairs }}
{{- else if kindIs "slice" . -}}
{{ join "," . }}
{{- else if kindIs "float64" . -}}
{{ toJson . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end }}
