;; Its configuration schema is no JSON.
;; kind: health
;; refused: describe
;; says: schema is not JSON
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 104) "\80\00\00\00\04\00\00\00")
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
