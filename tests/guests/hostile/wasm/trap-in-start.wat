;; Gives up while it is instantiated.
;; kind: health
;; refused: describe
;; says: unreachable
(component
  {{before}}
  (core module $code
    {{core}}
    (func $start unreachable)
    (start $start)
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
