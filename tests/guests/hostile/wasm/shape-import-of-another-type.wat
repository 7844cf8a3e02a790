;; Declares a function of the host with a type of its own.
;; kind: health
;; refused: inspect
;; says: bulkhead:policy/context@0.1.0
(component
  (import "bulkhead:policy/context@0.1.0" (instance (export "now-ms" (func (result string)))))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
