;; Loops in a start function of a module that only instantiation runs.
;; kind: health
;; refused: describe
(component
  (core module $first
    (func $start (loop (br 0)))
    (start $start))
  (core instance (instantiate $first))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
