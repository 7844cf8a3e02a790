;; Uses the stack up while it is instantiated.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (func $start (call $start) (call $start))
    (start $start)
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
