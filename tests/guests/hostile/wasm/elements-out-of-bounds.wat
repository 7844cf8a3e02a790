;; Has elements behind the end of its table.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (table 1 funcref)
    (elem (i32.const 1) $nothing)
    (func $nothing)
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
