;; Cannot be configured.
;; kind: health
;; refused: inspect
;; says: configure
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{instance}}
  {{types}}
  (func $describe (result $metadata)
    (canon lift (core func $code "describe") (memory (core memory $heap "memory"))))
  (instance $plugin (export "describe" (func $describe)))
  (export "bulkhead:policy/plugin@0.1.0" (instance $plugin))
  {{health}})
