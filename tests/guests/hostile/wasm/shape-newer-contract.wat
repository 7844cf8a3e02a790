;; Exports a kind of a newer contract.
;; kind: health
;; refused: inspect
;; says: this host supports bulkhead:policy@0.1.0
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{instance}}
  {{types}}
  {{plugin}}
  (func $interpret (param "observed" (borrow $object)) (result (result $verdict (error $error)))
    (canon lift (core func $code "interpret") (memory (core memory $heap "memory"))))
  (instance $health (export "interpret" (func $interpret)))
  (export "bulkhead:policy/health@0.2.0" (instance $health)))
